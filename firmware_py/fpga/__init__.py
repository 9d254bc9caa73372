"""The design on a board: synthesis, place and route, and what came of it."""
