"""What helm-run makes known to HELM before it begins, for our commands."""

from __future__ import annotations

from pathlib import Path


def fill_registries(local_path: Path) -> None:
    """HELM's deployments and models, those of a folder, and this package's run entries."""
    from helm.benchmark.config_registry import (
        register_builtin_configs_from_helm_package,
        register_configs_from_directory,
    )

    import helm_longctx.plugin  # noqa: F401

    register_builtin_configs_from_helm_package()
    register_configs_from_directory(str(local_path))
