"""A store like Ollama's, with models of the tests under names."""
import hashlib
import json
import os


def add(top, name, model, config=None, **layers):
    """model: path of a GGUF file. layers: kind=text, bytes or a value that becomes JSON, such as system="Be brief.", params={...}, messages=[...]"""
    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(top, "blobs", "sha256-" + digest), "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    os.makedirs(os.path.join(top, "blobs"), exist_ok=True)
    with open(model, "rb") as f:
        kinds = [("model", f.read())]
    kinds += [(kind, value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()) for kind, value in layers.items()]
    config = config or {"model_format": "gguf", "model_family": "gemma4", "model_type": "11M", "file_type": "Q4_K_M"}
    manifest = {"schemaVersion": 2,
                "config": {"mediaType": "application/vnd.docker.container.image.v1+json", **blob(json.dumps(config).encode())},
                "layers": [{"mediaType": f"application/vnd.ollama.image.{kind}", **blob(data)} for kind, data in kinds]}
    model, tag = name.split(":")
    path = os.path.join(top, "manifests", "registry.ollama.ai", "library", model, tag)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(manifest, f)
