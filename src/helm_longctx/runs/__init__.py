"""The files in a run's folder. All other rooms read and write them only with the functions in this room."""
