package dev.pgworker.dashboard;

import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * The properties of the dashboard.
 *
 * @param enabled Whether to serve the dashboard.
 * @param path Path of the dashboard below the context path of the application, beginning with a slash.
 * @param allowActions Whether users may change jobs, as far as their role allows. If not, the dashboard only shows them.
 * @param allowAnyAddress Whether the server may listen on other addresses than loopback although Spring Security is absent.
 *     Only requests from this machine are answered in any case.
 * @param payloads Whether payloads and results are shown. A DashboardPayloads bean decides for each instead.
 * @param role Role of Spring Security that may read.
 * @param actionsRole Role of Spring Security that may read and, if actions are allowed, change jobs.
 * @param dataSource Name of the data source bean to read from, such as that of a replica. By default, the worker's. Changes
 *     always go to the worker's.
 * @since 0.1.0
 */
@ConfigurationProperties("pgworker.dashboard")
public record DashboardProperties(
        @DefaultValue("false") boolean enabled,
        @DefaultValue("/pgworker") String path,
        @DefaultValue("false") boolean allowActions,
        @DefaultValue("false") boolean allowAnyAddress,
        @DefaultValue("hidden") Payloads payloads,
        @DefaultValue("PGWORKER_READER") String role,
        @DefaultValue("PGWORKER_OPERATOR") String actionsRole,
        @Nullable String dataSource) {

    private static final Pattern PATH = Pattern.compile("(/(?!\\.+(/|$))[A-Za-z0-9._~-]+)++");

    /**
     * Whether payloads are shown.
     *
     * @since 0.1.0
     */
    public enum Payloads {

        /** Payloads and results are hidden from all users. */
        HIDDEN,

        /** All users who may read see them. */
        SHOWN
    }

    /**
     * Validates the values.
     *
     * @throws InvalidConfigurationPropertyValueException if one is not allowed
     */
    public DashboardProperties {
        if (!PATH.matcher(path).matches()) {
            throw new InvalidConfigurationPropertyValueException(
                    "pgworker.dashboard.path",
                    path,
                    "It must begin with a slash, must not end with one, and consist of letters, digits, dots, hyphens,"
                            + " underscores and tildes between slashes, as in /ops/worker.");
        }
        requireRole("pgworker.dashboard.role", role);
        requireRole("pgworker.dashboard.actions-role", actionsRole);
    }

    private static void requireRole(String property, String role) {
        if (role.isBlank()) {
            throw new InvalidConfigurationPropertyValueException(property, role, "It must not be empty.");
        }
    }
}
