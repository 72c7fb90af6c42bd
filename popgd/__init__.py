"""Exact population risk, gradients and training dynamics of a shallow attention model."""

__version__ = "0.1.0"
