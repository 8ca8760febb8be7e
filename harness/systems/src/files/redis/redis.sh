# One member: a Redis server and the Sentinel beside it, in the foreground. Both are killed, stopped and cut off
# together, as a host is. redis.toml runs it as local processes, compose.yaml in containers.
set -eu
DATA=${DATA:-/data}
mkdir -p "$DATA"

# Both programs write what they learn into their configuration, so a member that comes back is what Sentinel
# made of it. That is why the files are made once.
if [ ! -e "$DATA/sentinel.conf" ]; then
  {
    echo "bind ${BIND:-0.0.0.0}"
    echo "protected-mode no"
    echo "port ${REDIS_PORT:-6379}"
    echo "dir $DATA"
    echo "appendonly yes"
    echo 'save ""'
    echo "repl-diskless-sync-delay 0"
    # So many replicas must have been heard of within a second, or the primary refuses to write.
    if [ -n "${MIN_REPLICAS:-}" ]; then
      echo "min-replicas-to-write $MIN_REPLICAS"
      echo "min-replicas-max-lag 1"
    fi
    # Where others must dial it, when that is not where it listens.
    if [ -n "${REDIS_DIALLED:-}" ]; then
      echo "replica-announce-ip $FIRST_HOST"
      echo "replica-announce-port $REDIS_DIALLED"
    fi
    [ "$ID" = 1 ] || echo "replicaof $FIRST_HOST ${FIRST_PORT:-6379}"
  } > "$DATA/redis.conf"
  {
    echo "bind ${BIND:-0.0.0.0}"
    echo "protected-mode no"
    echo "port ${SENTINEL_PORT:-26379}"
    echo "dir $DATA"
    echo "sentinel resolve-hostnames yes"
    echo "sentinel monitor main $FIRST_HOST ${FIRST_PORT:-6379} $QUORUM"
    echo "sentinel down-after-milliseconds main 1000"
    echo "sentinel failover-timeout main 3000"
    if [ -n "${SENTINEL_DIALLED:-}" ]; then
      echo "sentinel announce-ip $FIRST_HOST"
      echo "sentinel announce-port $SENTINEL_DIALLED"
    fi
  } > "$DATA/sentinel.conf"
fi

redis-server "$DATA/redis.conf" &
# The same as redis-sentinel, which some systems install by itself.
exec redis-server "$DATA/sentinel.conf" --sentinel
