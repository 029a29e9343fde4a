"""The table of countries beside Google's metadata: calling codes, and each country's example numbers as
people write them."""

from __future__ import annotations

from typing import Any

import pytest

from mpc_protocols.psu.identifiers import phone
from mpc_protocols.psu.identifiers.normalise import field_of

REFUSED = {("AR", "mobile")}
"""A number written nationally that has no certain international form: refused, not guessed."""
OTHERWISE = {("BY", "toll free")}
"""Numbers of nobody, which both owners of a study would write alike."""


@pytest.fixture(scope="module")
def metadata() -> Any:
    return pytest.importorskip("phonenumbers")


def test_calling_codes_agree(metadata: Any) -> None:
    regions = metadata.SUPPORTED_REGIONS
    assert len(regions) > 240 and regions <= phone.CALLING_CODES.keys()
    codes = {region: str(metadata.country_code_for_region(region)) for region in regions}
    assert codes == {region: phone.CALLING_CODES[region] for region in regions}


def test_example_numbers_are_one_person_however_they_are_written(metadata: Any) -> None:
    kinds = {"fixed": 0, "mobile": 1, "toll free": 3}
    forms = metadata.PhoneNumberFormat
    tried = 0
    for region in sorted(metadata.SUPPORTED_REGIONS):
        for kind, number in kinds.items():
            example = metadata.example_number_for_type(region, number)
            if example is None or (region, kind) in OTHERWISE:
                continue
            whole = metadata.format_number(example, forms.E164)
            for form in (forms.E164, forms.INTERNATIONAL, forms.NATIONAL):
                found = field_of(metadata.format_number(example, form), f"phone:{region}")
                if form == forms.NATIONAL and (region, kind) in REFUSED:
                    assert found is None
                else:
                    assert found == whole.encode(), (region, kind, form)
                tried += 1
    assert tried > 1900
