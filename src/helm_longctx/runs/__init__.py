"""The files in a run's folder. The runner, the report and the command line read and write them only through here."""
