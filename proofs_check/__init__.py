"""The paper's claims, judged by enclosures."""
