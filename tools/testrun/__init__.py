"""The parts of tools/run-tests."""
