"""Protocols that only research uses: published ones for comparison, and what systems without a sound claim or
utility talk by.

A roof like `synth/research/`: nothing outside imports what is in here; an algorithm of research names its
protocol, and a registry finds a method or a backend (`mpc_protocols/registry.py`, `tests/test_research.py`).
"""
