"""What publications say about the models whose scores they have."""

from __future__ import annotations

from dataclasses import dataclass

from helm_longctx.data.tables import read_table
from helm_longctx.tasks.lengths import parse_length


@dataclass(frozen=True)
class ModelProperties:
    """What a publication says about a model. A text is empty, and a number None, if it says nothing.

    Args:
        family: the group of models in the publication.
        window: the training length in tokens or, if that is unknown, the context window that the maker claims.
        architecture: how the model attends to its context.
        positions: how positions are encoded or extrapolated.
        parameters: billions of parameters; of a mixture of experts the active ones, and after a slash all of them.
        instruct: whether the publication calls the model instruction-tuned.
        source: the table from which the other fields are, `instruct` excepted.
    """

    family: str
    window: int | None
    architecture: str
    positions: str
    parameters: str
    instruct: bool
    source: str

    @property
    def active(self) -> float | None:
        """Billions of active parameters, which are all of them except in mixtures of experts."""
        return float(self.parameters.partition("/")[0]) if self.parameters else None


def read_models(package: str) -> dict[str, ModelProperties]:
    """Read the models' properties in `models.csv`, a file of a benchmark's package, by published name."""
    return {
        row["model"]: ModelProperties(
            row["family"],
            parse_length(row["window"]) if row["window"] else None,
            row["architecture"],
            row["positions"],
            row["parameters"],
            row["instruct"] == "1",
            row["source"],
        )
        for row in read_table(package, "models.csv")
    }
