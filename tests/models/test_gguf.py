"""Tests of the conversion of GGUF files: weights, tokenizers, the command, and files that cannot be converted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

from helm_longctx.errors import InputError  # noqa: E402
from helm_longctx.models.local import gguf  # noqa: E402
from tests.models.gguf_files import BOS, END, train_bpe, train_model, write_gguf  # noqa: E402
from tests.support.commands import Command  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str], list[str]]:
    """Return a model that knows the conversion's text, and its tokens and merges."""
    tokens, merges = train_bpe(gguf.TEXT)
    folder = tmp_path_factory.mktemp("untrained")
    source = write_gguf(
        folder / "m.gguf", train_model([0, 1], len(tokens)), tokens, merges
    )
    return (
        train_model(gguf._read_tokenizer(source)(gguf.TEXT)["input_ids"], len(tokens)),
        tokens,
        merges,
    )


@pytest.fixture(scope="module")
def source(
    parts: tuple[Any, list[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf", *parts)


def test_a_folder_has_the_weights_of_the_file(
    parts: tuple[Any, list[str], list[str]], source: Path, tmp_path: Path
) -> None:
    """The converted model computes the logits of the model from which the file was made, and has its tokens."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = gguf.convert(source, tmp_path / "model")
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {
        ".json",
        ".safetensors",
        ".jinja",
    }
    assert (folder.tokens, folder.window, folder.can_chat) == (len(parts[1]), 512, True)
    assert folder.loss < gguf.GUESSING * folder.guess
    model = AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", use_safetensors=True
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    ids = torch.tensor([tokenizer("London is the capital of 12 towns.")["input_ids"]])
    assert torch.allclose(model(ids).logits, parts[0](ids).logits, atol=1e-4)
    assert tokenizer.convert_ids_to_tokens(ids[0])[0] == BOS
    assert (model.generation_config.eos_token_id, tokenizer.eos_token) == (1, END)
    assert (
        tokenizer.apply_chat_template(
            [{"role": "user", "content": "Hi"}], tokenize=False
        )
        == "Hi"
    )


@pytest.mark.parametrize(
    ("rule", "split"), [("smollm", ["ĊĊ", "1", "2"]), ("gpt-2", ["Ċ", "Ċ", "12"])]
)
def test_a_text_is_split_by_the_files_rule(
    parts: tuple[Any, list[str], list[str]], tmp_path: Path, rule: str, split: list[str]
) -> None:
    """SmolLM's rule makes each digit a word and keeps the newlines before it together, and GPT-2's does not."""
    model, tokens, merges = parts
    # These merges of two newlines and two digits show where a text was split.
    changed = [*tokens[:-2], "ĊĊ", "12"]
    path = write_gguf(
        tmp_path / "m.gguf",
        model,
        changed,
        ["Ċ Ċ", "1 2", *(m for m in merges if m.replace(" ", "") in changed)],
        rule,
    )
    tokenizer = gguf._read_tokenizer(path)
    assert (
        tokenizer.convert_ids_to_tokens(tokenizer("\n\n12")["input_ids"])[1:] == split
    )


def test_mixed_up_weights_are_found(
    parts: tuple[Any, list[str], list[str]], tmp_path: Path
) -> None:
    """A file whose model predicts no better than a guess is refused, and no folder is left."""
    _, tokens, merges = parts
    path = write_gguf(
        tmp_path / "m.gguf", train_model([0, 1], len(tokens)), tokens, merges
    )
    with pytest.raises(
        InputError,
        match=r"predicts plain English with [\d.]+ nats per token, and a blind guess has 5.8",
    ):
        gguf.convert(path, tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


@pytest.mark.parametrize("rule", ["llama-bpe", "default"])
def test_a_tokenizer_that_cannot_be_built(
    parts: tuple[Any, list[str], list[str]], tmp_path: Path, rule: str
) -> None:
    """A rule that is not known is refused, and the error says how to give the tokenizer."""
    path = write_gguf(tmp_path / "m.gguf", *parts, rule=rule)
    with pytest.raises(
        InputError,
        match=rf"with the rule '{rule}', which cannot be built exactly; .* with --tokenizer",
    ):
        gguf.convert(path, tmp_path / "model")


def test_another_tokenizer(
    parts: tuple[Any, list[str], list[str]], source: Path, tmp_path: Path
) -> None:
    """A tokenizer that the user gives is saved instead of the file's."""
    gguf.convert(source, tmp_path / "first")
    path = write_gguf(tmp_path / "m.gguf", *parts, rule="llama-bpe")
    folder = gguf.convert(path, tmp_path / "second", tokenizer=str(tmp_path / "first"))
    assert folder.tokens == len(parts[1])
    with pytest.raises(InputError, match="--tokenizer='/nowhere/x' cannot be loaded"):
        gguf.convert(path, tmp_path / "third", tokenizer="/nowhere/x")


def test_the_command(source: Path, tmp_path: Path, command: Command) -> None:
    """The command converts, says what it checked, and writes a deployment with the folder and the window."""
    arguments = (
        "models",
        "convert",
        source,
        "--name",
        "my/small",
        "--dtype",
        "bfloat16",
    )
    assert command(*arguments, "--to", "model") == 0, command.err
    assert "tensors of bfloat16, each equal to the file's" in command.out
    assert "context: 512; chat template: yes" in command.out
    (deployment,) = yaml.safe_load(Path("prod_env/model_deployments.yaml").read_text())[
        "model_deployments"
    ]
    assert deployment["max_sequence_length"] == 512
    assert deployment["client_spec"]["args"]["pretrained_model_name_or_path"] == str(
        tmp_path / "model"
    )
    assert command(*arguments, "--to", "other") == 2
    assert (
        "prod_env already has 'my/small'; choose another name, or give --replace"
        in command.err
    )
    assert not Path("other").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["none.gguf", "--to", "x"],
            "FILE='none.gguf' is invalid; give the path of a GGUF file",
        ),
        (["bad.gguf", "--to", "x"], "bad.gguf cannot be read as a GGUF file: "),
        (
            ["bad.gguf", "--to", "full"],
            "--to='full' is invalid; give a folder that is empty or does not exist",
        ),
        (
            ["bad.gguf", "--to", "x", "--dtype", "int8"],
            "dtype='int8' is invalid; choose from float32",
        ),
        (["bad.gguf", "--to", "x", "--name", "no slash"], "NAME='no slash' is invalid"),
    ],
)
def test_refused_arguments(
    command: Command, arguments: list[str], message: str
) -> None:
    """Wrong arguments and files that are no GGUF files end in one line, and leave no folder."""
    Path("bad.gguf").write_bytes(b"GGUF" + b"\xff" * 64)
    Path("full").mkdir()
    Path("full/file").touch()
    assert command("models", "convert", *arguments) == 2
    assert message in command.err
    assert len(command.err.splitlines()) == 1
    assert not Path("x").exists()
