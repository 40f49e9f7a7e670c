#!/usr/bin/env python3
"""The verbs with a diffusion model on a GPU: what tests/cli/test_diffusion.py does, there.

    test_diffusion_verbs.py PROGRAM MODELS
"""
import os
import sys

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "test_diffusion.py")
os.execv(sys.executable, [sys.executable, TEST, *sys.argv[1:3], "--device", "gpu"])
