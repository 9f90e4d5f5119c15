"""Divides runs over several machines: shards that are started by hand or as jobs, and runners for Ray and Slurm."""

from helm_longctx.runner.machines.ray_runner import RayRunner

__all__ = ["RayRunner"]
