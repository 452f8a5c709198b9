"""What to write instead of the syntax of SQL, FlinkCEP, Esper and their relatives."""
