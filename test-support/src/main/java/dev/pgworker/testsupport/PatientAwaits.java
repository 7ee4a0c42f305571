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

    /** Half of what most tests have altogether, so that it is the wait that says what there was none of. */
    private static final Duration LIMIT = Duration.ofSeconds(30);

    @Override
    public void launcherSessionOpened(LauncherSession session) {
        Awaitility.setDefaultTimeout(LIMIT);
    }
}
