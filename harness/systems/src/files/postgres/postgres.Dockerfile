# PostgreSQL and Patroni:  docker build --file postgres.Dockerfile --tag postgres-patroni .
FROM postgres:17
RUN apt-get update \
 && apt-get install --yes --no-install-recommends patroni python3-kazoo \
 && rm -rf /var/lib/apt/lists/*
