package dev.pgworker.test;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.task.PayloadCodec;

/** Makes a test worker for each worker of an application, and what they hear of it. */
final class TestWorkerFactory {

    static final String BEAN = "testWorkerFactory";

    private final WorkerInstances instances;
    private final PayloadCodec codec;
    private final Map<String, RunRecorder> recorders = new ConcurrentHashMap<>();

    TestWorkerFactory(WorkerInstances instances, PayloadCodec codec) {
        this.instances = instances;
        this.codec = codec;
    }

    /** Returns the listener for the worker of this name. */
    WorkerEventListener listener(String name) {
        return recorder(name);
    }

    private RunRecorder recorder(String name) {
        return recorders.computeIfAbsent(name, key -> new RunRecorder());
    }

    /** Returns the test worker for the worker of this name. */
    TestWorker testWorker(String name) {
        WorkerInstance instance = instances.get(name);
        return new TestWorker(
                instance::worker,
                this::workers,
                instance.dataSource(),
                instance.schema(),
                codec,
                instance.jobScheduler(),
                recorder(name));
    }

    /** Returns all workers of the application, which may share schemas. */
    private List<Worker> workers() {
        return instances.all().stream()
                .map(WorkerInstance::worker)
                .filter(Objects::nonNull)
                .toList();
    }
}
