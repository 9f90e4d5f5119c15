"""Writes a GGUF file with the same numbers in float32, so that llama.cpp multiplies them without rounding.

    python -m bench.local.dequantize SmolLM2-135M-Instruct.Q4_1.gguf smollm2-f32.gguf

It needs the package gguf, which the extra `local` has. `engines.py` compares a server of either file with our client.
"""

from __future__ import annotations

import sys

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

ARCHITECTURE = "general.architecture"
FILE_TYPE = "general.file_type"
FLOAT32 = 0
"""The number of this type of file in llama.cpp."""


def main() -> None:
    """Copy the fields, and write each tensor in float32."""
    source, target = sys.argv[1:]
    reader = GGUFReader(source)
    fields = {
        name: field
        for name, field in reader.fields.items()
        if not name.startswith("GGUF.")
    }
    writer = GGUFWriter(target, fields.pop(ARCHITECTURE).contents())
    fields.pop(FILE_TYPE, None)
    for name, field in fields.items():
        if field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(name, field.contents())
        else:
            writer.add_key_value(name, field.contents(), field.types[0])
    writer.add_file_type(FLOAT32)
    for tensor in reader.tensors:
        writer.add_tensor(
            tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
