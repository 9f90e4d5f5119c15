"""Reliability: how much of the differences between models a sample of questions shows."""

from helm_longctx.apps.app import App, ReportPage

APP = App(pages=[ReportPage("reliability", "Reliability", f"{__name__}.sections:reliability_sections", place=110)])
