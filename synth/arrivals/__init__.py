"""Tables of contributors who come at different times (`later_wave`: a study over those who came too late for an earlier one)."""
