"""Can a judge be trusted? It is asked about answers whose verdict is known."""
