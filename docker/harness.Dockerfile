# The bench in an otherwise empty image: one static executable. Members are processes beside it.
#
#     cargo build --release --package harness
#     docker build --file docker/harness.Dockerfile --tag harness target/x86_64-unknown-linux-gnu/release
#     docker run --rm --volume "$PWD:/work" --workdir /work harness run --cluster process --nemesis kill-leader

FROM scratch
COPY harness /harness
ENV PATH=/
ENTRYPOINT ["/harness"]
