# syntax=docker/dockerfile:1

# Bases are named by tag, so that a build takes their latest fixes. For builds that can be repeated, pin them by digest:
# docs/deployment.md, "Pinning the images".

# Builds the executable from this checkout, by the same command as everywhere.
FROM node:22-bookworm-slim AS build
WORKDIR /build
# Tools and dependencies first: they change seldom, and this layer is kept until they do.
COPY package.json bun.lock bunfig.toml ./
COPY scripts/bootstrap scripts/bun.sha256 scripts/
RUN scripts/bootstrap
COPY migrations migrations
COPY scripts scripts
COPY src src
COPY docs docs
COPY LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md ./
# What `ninefold version` names: docker build --build-arg NINEFOLD_COMMIT=$(git rev-parse HEAD) …
ARG NINEFOLD_COMMIT NINEFOLD_COMMIT_DATE
RUN scripts/build && install -d -m 700 out/data
# The command that icmp monitors run, with its libraries: a copy has no file capabilities, with which it could not be started
# where all are dropped. Docker lets every user send pings.
RUN apt-get update && apt-get install -y --no-install-recommends iputils-ping && rm -rf /var/lib/apt/lists/* \
  && install -D -m 755 /usr/bin/ping out/ping/usr/bin/ping \
  && for library in $(ldd /usr/bin/ping | awk '$3 ~ /lib(cap|idn2|unistring)/ {print $3}'); do \
    install -D -m 644 "$library" "out/ping/usr$library" || exit 1; done

# The C library, certificates and time zones: the executable needs nothing else, and there is no shell.
FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /build/out/ping/ /
COPY --from=build --chmod=755 /build/dist/ninefold /usr/local/bin/ninefold
# The nobody of this image owns the folder, and with it every new volume that is put there.
COPY --from=build --chown=65532:65532 /build/out/data /data
ENV NINEFOLD_HOST=0.0.0.0 NINEFOLD_PORT=9909 NINEFOLD_DATA=/data
USER 65532:65532
VOLUME /data
EXPOSE 9909
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["/usr/local/bin/ninefold", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/ninefold"]
CMD ["serve"]
