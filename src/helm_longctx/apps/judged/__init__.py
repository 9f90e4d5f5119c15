"""Judged scores beside the scores of rules on the same answers."""

from helm_longctx.apps.app import App, ReportPage

APP = App(pages=[ReportPage("judged", "Judged scores", f"{__name__}.sections:judged_sections", place=90)])
