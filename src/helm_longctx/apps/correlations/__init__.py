"""Correlations of tasks: which tasks order models alike."""

from helm_longctx.apps.app import App, ReportPage

APP = App(pages=[ReportPage("tasks", "Correlations", f"{__name__}.sections:task_sections", place=70)])
