"""The parts that HELM calls: scenario, adapter, metric, annotator, run specs, and checks of `helm-run`'s arguments."""
