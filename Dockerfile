# A container with ML-Compiler-Bridge built: docker build -t mlbridge . && docker run -it mlbridge
# tests/packaging/container runs these steps in a Debian root made by debootstrap; the image itself is not tested.
FROM debian:12
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git make python3 python3-venv
COPY . /opt/ml-compiler-bridge
WORKDIR /opt/ml-compiler-bridge
RUN make build
ENV PATH=/opt/ml-compiler-bridge/.venv/bin:$PATH
CMD ["mlbridge", "doctor"]
