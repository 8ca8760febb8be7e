# One member: Patroni in the foreground, and the PostgreSQL server that it makes, starts and promotes.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
HOME=/var/lib/postgresql

# Patroni calls this once, when there is a new database: it needs somebody for clients, who is no superuser. Those
# have connections reserved, which Patroni needs.
if [ "${1:-}" = made ]; then
  exec psql "$2" --command "CREATE ROLE app LOGIN" --command "CREATE DATABASE app OWNER app"
fi

cat > "$HOME/patroni.yml" <<END
scope: harness
name: $NAME
zookeeper: { hosts: ["zookeeper:2181"] }
restapi: { listen: "0.0.0.0:8008", connect_address: "$NAME:8008" }
bootstrap:
  # What all members share, in the store; read once, by the member that makes the database.
  dcs:
    # The shortest times that Patroni takes.
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    # How many bytes a replica may lack and still be promoted. So many may be lost.
    maximum_lag_on_failover: 1048576
    # Commits wait for one replica, and only that one may be promoted. Strict: without a replica they wait for ever.
    synchronous_mode: $SYNCHRONOUS
    synchronous_mode_strict: $SYNCHRONOUS
    postgresql:
      use_pg_rewind: true
      parameters:
        # A replication that is cut off is noticed, and begun again, within seconds and not within a minute.
        wal_sender_timeout: 5s
        wal_receiver_timeout: 5s
        wal_retrieve_retry_interval: 1s
  initdb: [auth-host: trust, auth-local: trust, encoding: UTF8, locale: C.UTF-8, data-checksums]
  pg_hba: ["local all all trust", "host all all all trust", "host replication all all trust"]
  post_init: sh /postgres.sh made
postgresql:
  listen: "0.0.0.0:5432"
  connect_address: "$NAME:5432"
  data_dir: $HOME/main
  pgpass: $HOME/pgpass
  parameters: { unix_socket_directories: /tmp }
  # A copy begins at once, and not with the next checkpoint, which may be minutes away.
  basebackup: [checkpoint: fast]
  authentication: { superuser: { username: postgres }, replication: { username: postgres } }
  # A primary that was deposed comes back as a replica whatever it has that nobody else has.
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
END
exec patroni "$HOME/patroni.yml"
