package dev.pgworker.internal.failure;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.AbstractLogger;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.spi.LocationAwareLogger;

/**
 * The log of a class of PgWorker, in which data cannot forge a line. An argument is shown in one line of bounded length. An exception whose
 * text has several lines, or is very long, is replaced by its text, bounded, with all lines but the first indented. All classes of PgWorker
 * log through it, which {@code ArchitectureTest} checks.
 */
public final class WorkerLog extends LegacyAbstractLogger {

    private static final long serialVersionUID = 1L;

    /** Where a logging system looks for the caller: above the methods that this class inherits. */
    private static final String CALLED = AbstractLogger.class.getName();

    private final transient Logger log;

    private WorkerLog(Logger log) {
        this.name = log.getName();
        this.log = log;
    }

    /** Returns the log of a class. */
    public static Logger of(Class<?> type) {
        return new WorkerLog(LoggerFactory.getLogger(type));
    }

    @Override
    public boolean isTraceEnabled() {
        return log.isTraceEnabled();
    }

    @Override
    public boolean isDebugEnabled() {
        return log.isDebugEnabled();
    }

    @Override
    public boolean isInfoEnabled() {
        return log.isInfoEnabled();
    }

    @Override
    public boolean isWarnEnabled() {
        return log.isWarnEnabled();
    }

    @Override
    public boolean isErrorEnabled() {
        return log.isErrorEnabled();
    }

    @Override
    protected String getFullyQualifiedCallerName() {
        return CALLED;
    }

    @Override
    protected void handleNormalizedLoggingCall(
            Level level,
            @Nullable Marker marker,
            @Nullable String message,
            @Nullable Object @Nullable [] arguments,
            @Nullable Throwable error) {
        String text = LogText.indented(String.valueOf(message));
        @Nullable Object[] shown = LogText.ofAll(arguments);
        Throwable safe = error == null ? null : ErrorText.inLog(error);
        if (log instanceof LocationAwareLogger aware) {
            aware.log(marker, CALLED, level.toInt(), text, shown, safe);
        } else {
            log.atLevel(level).setCause(safe).log(text, shown);
        }
    }
}
