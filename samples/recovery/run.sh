#!/usr/bin/env bash
# Starts two workers, kills the one that runs a job in the middle of it, and waits until the other has done the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
mvn -q -pl samples/recovery -am test-compile dependency:build-classpath -Dmdep.outputFile=target/classpath
cd samples/recovery
classpath=target/test-classes:target/classes:$(cat target/classpath)

workers=()
database=

# Starts the worker $1 with the arguments that follow. Its output is shown and kept in target/$1.log.
start() {
  java -cp "$classpath" dev.pgworker.samples.recovery.RecoveryApplication "${@:2}" > >(tee "target/$1.log") 2>&1 &
  workers+=($!)
}

# Waits at most two minutes until target/$1.log, a pattern, contains $2.
await() {
  for _ in {1..600}; do
    if grep -qs "$2" target/$1.log; then return; fi
    sleep 0.2
  done
  echo "Waited in vain for: $2" >&2
  exit 1
}

# The database as the last one, when no worker needs it any more.
stop() {
  kill "${workers[@]}" 2>/dev/null || true
  wait "${workers[@]}" 2>/dev/null || true
  if [ -n "$database" ]; then kill "$database" && wait "$database" || true; fi
}
trap stop EXIT

rm -f target/*.log
if [ -z "${SPRING_DATASOURCE_URL:-}" ]; then
  java -cp "$classpath" dev.pgworker.samples.recovery.RecoveryDatabase >target/database.log 2>&1 &
  database=$!
  await database 'URL '
  SPRING_DATASOURCE_URL=$(sed -n 's/^URL //p' target/database.log)
  export SPRING_DATASOURCE_URL
fi

start worker-1
await worker-1 'Worker .* starts'
start worker-2 --add

await 'worker-*' 'Imported page 4 of'
busy=$(sed -n 's/.*process \([0-9]*\): Imported page 4 of.*/\1/p' target/worker-*.log)
echo "kill -9 $busy"
kill -9 "$busy"

await 'worker-*' 'Done'
