"""Checks a Kubernetes manifest against the schemas of a version, strictly, and prints it as JSON.

  check_manifest.py VERSION < manifest.yaml
"""
import json
import sys

import kubernetes_validate
import yaml

manifest = yaml.safe_load(sys.stdin)
kubernetes_validate.validate(manifest, sys.argv[1], strict=True)
print(json.dumps(manifest))
