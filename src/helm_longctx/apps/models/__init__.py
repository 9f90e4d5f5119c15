"""The properties of models beside their scores."""

from helm_longctx.apps.app import App, ReportPage

APP = App(pages=[ReportPage("models", "Models", f"{__name__}.sections:model_sections", place=80)])
