"""The software's version: part of every study's digest, so that parties with different versions refuse each other (exit 22)."""

VERSION = "0.1.0"
