"""Run a batch of simulations from the command line: `groundswell simulate`, with all its options.

python3 examples/run_batch_simulation.py \\
    --entities "entity_ids.json" \\
    --context "A panel discussion about climate change solutions" \\
    --interaction-size 2 \\
    --num-simulations 3 \\
    --name "Climate Change Discussions" \\
    --description "Testing how different entities discuss climate solutions" \\
    --n-turns 2 \\
    --simulation-rounds 1

Entities are given by id from the store (create them with `groundswell entities add`, `sample` or `import`) or as a
file of whole entities. The default model is the embedded one; set another with --model. Running the same command again
continues the run.
"""

from __future__ import annotations

import sys

from groundswell.cli.app import main

if __name__ == "__main__":
    sys.argv[1:1] = ["simulate"]
    main()
