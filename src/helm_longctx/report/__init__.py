"""What is made of the task table and of HELM's output: run-entry files, schema, tables. No benchmark's name here."""
