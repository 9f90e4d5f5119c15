"""What HELM calls: scenario, adapter, metric, annotator, run specs."""
