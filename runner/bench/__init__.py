"""`python -m runner bench`: what every protocol costs, measured with real party processes over the real session.

    registry.py     what a benchmark is; each lies in a file of its own in `benches/`, found by being there
    by_backend.py   kernels that every backend runs through its own engine; candidates.py: their invented tables and answers
    parameters.py   what the command line may vary, as lists
    network.py      loopback, LAN, WAN and explicit delays, emulated in the session (`runner.bench.net.shim`) or by netns.py, with
                    netem or relay.py
    processes.py    the party processes as this process sees them; party.py is what runs in each; repeat.py times one job there
    driver.py       every point of every curve, one after the other; results.py makes the JSON line of each
    table.py        the lines for a terminal; page.py and curves.py: the same as an HTML page

Data are invented, processes are ours, everything runs on this machine: a benchmark protects nothing and needs no protection.
"""
