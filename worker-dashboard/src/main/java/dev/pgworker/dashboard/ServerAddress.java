package dev.pgworker.dashboard;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.cloud.CloudPlatform;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.ApplicationContext;
import org.springframework.core.env.Environment;

/** Where the web server of an application listens. */
final class ServerAddress {

    private final ApplicationContext context;
    private final Environment environment;

    ServerAddress(ApplicationContext context) {
        this.context = context;
        this.environment = context.getEnvironment();
    }

    /**
     * Checks that only this machine can reach the server. Without a server, as in tests with a mock, nobody can.
     *
     * @throws OpenAddressException if others can
     */
    void requireLoopback(boolean allowAny) {
        String address = environment.getProperty("server.address");
        if (!allowAny && context instanceof WebServerApplicationContext && !isLoopback(address)) {
            throw new OpenAddressException(address);
        }
    }

    private static boolean isLoopback(@Nullable String address) {
        return address != null && (address.equals("localhost") || LoopbackAccess.isLoopback(address));
    }

    /**
     * Returns whether headers change where a request seems to come from; they do by default on cloud platforms. Names of headers
     * for Tomcat are in effect whatever the strategy is.
     */
    boolean appliesForwards() {
        if (environment.containsProperty("server.tomcat.remoteip.remote-ip-header")
                || environment.containsProperty("server.tomcat.remoteip.protocol-header")) {
            return true;
        }
        String strategy = environment.getProperty("server.forward-headers-strategy");
        if (strategy != null) {
            return !strategy.equalsIgnoreCase("none");
        }
        CloudPlatform platform = CloudPlatform.getActive(environment);
        return platform != null && platform.isUsingForwardHeaders();
    }
}
