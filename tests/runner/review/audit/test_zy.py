import sys
from dataclasses import replace
from tests.runner.review.audit.test_checks import GROUPS, noise_times, driver, subject
from runner.review.audit.check import Profile
def test_x():
    with subject(None, ["replicated"], Profile.DEFAULT, "tests") as s:
        for pc in (100, 50, 25):
          for rows in (200, len(s.rows)):
            with noise_times(pc):
                sub=replace(s,rows=s.rows[:rows])
                [r]=driver.carry_out(sub, driver.chosen(GROUPS, (), ["M.runs"], Profile.DEFAULT))
            f=r.finding
            print("RES",rows,pc,f.verdict,f.evidence,{k:v for k,v in f.figures.items()} if hasattr(f,'figures') else vars(f).keys(), file=sys.stderr,flush=True)
