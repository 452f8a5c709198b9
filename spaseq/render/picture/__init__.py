"""The automaton of a plan as a picture: SVG, Mermaid and DOT."""
