"""`cosynth bench`: what every protocol costs, measured with real party processes over the real session.

    registry.py     what a benchmark is; each lies in a file of its own in `benches/`, found by being there
    by_backend.py   kernels that every backend runs through its own engine; tables/: their invented tables and answers
    parameters.py   what the command line may vary, as lists
    net/            loopback, LAN, WAN and explicit delays, emulated in the session (shim.py) or by netns.py with netem, relay.py
    running/        driver.py: every point of every curve, one after the other; processes.py: the party processes as this process
                    sees them; party.py is what runs in each; repeat.py times one job there
    output/         the JSON line of each point, lines for a terminal, and the same as an HTML page
    utility/        how good the tables are: algorithms against algorithms, in the clear

Data are invented, processes are ours, everything runs on this machine: a benchmark protects nothing and needs
no protection.
"""
