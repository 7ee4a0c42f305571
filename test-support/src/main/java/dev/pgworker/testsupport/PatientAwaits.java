package dev.pgworker.testsupport;

import java.time.Duration;

import org.awaitility.Awaitility;
import org.junit.platform.launcher.LauncherSession;
import org.junit.platform.launcher.LauncherSessionListener;

/**
 * Has tests wait longer for what they await, on machines that stand still for seconds. It is found as a service, by whatever runs
 * the tests of a module.
 */
public final class PatientAwaits implements LauncherSessionListener {

    /** Nothing that is awaited in vain costs less, nothing that comes costs more; the limit of a whole test is longer (junit-platform.properties). */
    private static final Duration LIMIT = Duration.ofMinutes(2);

    @Override
    public void launcherSessionOpened(LauncherSession session) {
        Awaitility.setDefaultTimeout(LIMIT);
    }
}
