#!/usr/bin/env bash
# Installs the extraction servers that tests/tests/system_remote.rs talks to, into a Python of their own: Triton, and what
# crates/gpu-worker/tests/embedding/service.py is made of. Nothing of it is needed to build or run Rollcall, and tests that
# find none say so and leave it out. It takes a quarter of a minute and 330 MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

home=${ROLLCALL_HOME:-$PWD/.rollcall}
servers=$home/servers
# Without what they would pull in: Triton's package carries a Python client that nobody asks here. Its stub reads the arrays of
# numpy 1; of numpy 2 it sends none of the values.
packages=(
    nvidia-pytriton==0.7.0 onnxruntime==1.32.0 numpy==1.26.4 protobuf==7.36.2 flatbuffers==25.12.19 packaging==26.4
    kaldi-native-fbank==1.23.0
    starlette==1.10.0 uvicorn==0.54.0 python-multipart==0.0.34 anyio==4.16.0 h11==0.16.0 click==8.5.1 idna==3.20
    sniffio==1.3.1 typing_extensions==4.16.0
)

if [ "$(cat "$servers/installed" 2>/dev/null)" = "${packages[*]}" ]; then
    exit 0
fi
rm -rf "$servers"
python3 -m venv "$servers" || {
    echo "servers: this needs python3 with venv; on Debian: apt-get install python3-venv" >&2
    exit 1
}
echo "servers: fetching Triton and an embedding service" >&2
"$servers/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: "${packages[@]}"

# Triton looks for the stub of this Python beside its backend. It has none for every Python: then Triton is left out.
triton=$("$servers/bin/python" -c 'import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_path("purelib"), "pytriton/tritonserver"))')
version=$("$servers/bin/python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
stub=$triton/python_backend_stubs/$version/triton_python_backend_stub
if [ -f "$stub" ]; then
    cp "$stub" "$triton/backends/python/"
    ln -s "$triton" "$servers/triton"
else
    echo "servers: Triton has no stub for Python $version and is left out" >&2
fi
echo "${packages[*]}" >"$servers/installed"
