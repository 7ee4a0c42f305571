package dev.pgworker.dashboard;

import java.time.Clock;

import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.context.SmartLifecycle;

/**
 * The parts of a dashboard, and their end: open tabs would otherwise keep a graceful shutdown waiting, so they are closed before
 * the web server begins to stop.
 */
final class Dashboard implements SmartLifecycle, DisposableBean {

    /** Stops before the web server, whose phases are 1024 and 2048 below the default one. */
    private static final int PHASE = SmartLifecycle.DEFAULT_PHASE - 512;

    private final DashboardServlet servlet;
    private final DatabaseWork work;
    private final LiveHub hub;
    private final Bulks bulks;
    private volatile boolean running;

    private Dashboard(DashboardServlet servlet, DatabaseWork work, LiveHub hub, Bulks bulks) {
        this.servlet = servlet;
        this.work = work;
        this.hub = hub;
        this.bulks = bulks;
    }

    /**
     * Creates a dashboard.
     *
     * @param rule what the application shows of payloads; null if a property says it
     * @param securityChains whether there are filter chains of Spring Security
     */
    static Dashboard create(
            DashboardProperties properties,
            Sources sources,
            DashboardAccess access,
            @Nullable DashboardPayloads rule,
            boolean securityChains,
            Clock clock) {
        PayloadRule payloads = new PayloadRule(rule, properties.payloads() == DashboardProperties.Payloads.SHOWN);
        Csrf csrf = new Csrf();
        Guard guard = new Guard(access, properties.allowActions(), csrf, securityChains);
        Overviews overviews = new Overviews(clock, payloads);
        DatabaseWork work = new DatabaseWork();
        LiveHub hub = new LiveHub(sources, overviews, work, payloads, clock);
        Bulks bulks = new Bulks(hub, clock);
        Api api = new Api(
                sources,
                guard,
                csrf,
                payloads,
                clock,
                new Api.Parts(
                        work,
                        new ReadApi(clock, payloads, overviews),
                        new WriteApi(),
                        new ScheduleApi(clock, payloads),
                        bulks,
                        hub));
        return new Dashboard(new DashboardServlet(guard, new StaticFiles(), api), work, hub, bulks);
    }

    DashboardServlet servlet() {
        return servlet;
    }

    LiveHub hub() {
        return hub;
    }

    @Override
    public void start() {
        hub.start();
        running = true;
    }

    @Override
    public void stop() {
        running = false;
        hub.stop();
        bulks.stopAll();
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public int getPhase() {
        return PHASE;
    }

    @Override
    public void destroy() {
        hub.stop();
        bulks.close();
        work.stop();
    }
}
