"""Divides runs over several machines: shards that are started by hand or as jobs, and runners for Ray and Slurm."""

from helm_longctx.scaling.ray_runner import RayRunner

__all__ = ["RayRunner"]
