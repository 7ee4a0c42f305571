package dev.pgworker.dashboard;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Collections;
import java.util.Enumeration;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;

/**
 * Without anybody who could sign in, only who sits at this machine has access: the request comes from a loopback address, no proxy
 * has passed it on, and it names this machine. The last keeps out pages of other sites whose name suddenly means this machine.
 */
final class LoopbackAccess implements ExplainedAccess {

    private static final String REMEDY = " Add Spring Security, or a DashboardAccess bean, to give others access.";

    /** Each says that somebody else has sent the request. */
    private static final Set<String> FORWARDING = Set.of(
            "forwarded",
            "via",
            "client-ip",
            "true-client-ip",
            "fastly-client-ip",
            "fly-client-ip",
            "cdn-loop",
            "x-real-ip",
            "x-client-ip",
            "x-cluster-client-ip",
            "x-original-forwarded-for",
            "x-original-host",
            "x-envoy-external-address",
            "x-appengine-user-ip",
            "x-arr-clientip",
            "x-proxyuser-ip");

    private static final Pattern FORWARDING_PREFIX =
            Pattern.compile("(x-forwarded|x-azure|cf-|x-amz-cf|x-amzn-|x-goog-|x-envoy-|x-tailscale|ngrok-).*");

    private static final Pattern NUMERIC = Pattern.compile("127(\\.[0-9]{1,3}){3}|\\[[0-9a-f:]+]");

    private final boolean forwardsAreApplied;

    /**
     * Creates the access.
     *
     * @param forwardsAreApplied whether the server takes the sender from headers, so that nobody can tell who has sent a request
     */
    LoopbackAccess(boolean forwardsAreApplied) {
        this.forwardsAreApplied = forwardsAreApplied;
    }

    @Override
    public boolean mayRead(HttpServletRequest request) {
        return refusal(request) == null;
    }

    @Override
    public boolean may(DashboardAction action, HttpServletRequest request) {
        return mayRead(request);
    }

    @Override
    public String whyNot(HttpServletRequest request) {
        String refusal = refusal(request);
        return refusal == null ? "The request is allowed." : refusal + REMEDY;
    }

    private @Nullable String refusal(HttpServletRequest request) {
        if (forwardsAreApplied) {
            return "Without Spring Security the dashboard answers requests from this machine alone, and"
                    + " server.forward-headers-strategy lets headers say where a request comes from.";
        }
        HttpServletRequest received = received(request);
        if (!isLoopback(received.getRemoteAddr())) {
            return "Without Spring Security the dashboard answers requests from this machine alone.";
        }
        for (String header : Collections.list(names(received))) {
            String name = header.toLowerCase(Locale.ROOT);
            if (FORWARDING.contains(name) || FORWARDING_PREFIX.matcher(name).matches()) {
                return "Without Spring Security the dashboard answers requests from this machine alone, and a proxy has"
                        + " passed this one on (header " + name + ").";
            }
        }
        if (!namesThisMachine(received.getHeader("Host"))) {
            return "Without Spring Security the dashboard is served as localhost or 127.0.0.1 alone.";
        }
        return null;
    }

    private static Enumeration<String> names(HttpServletRequest request) {
        Enumeration<String> names = request.getHeaderNames();
        return names == null ? Collections.emptyEnumeration() : names;
    }

    /** Returns the request as the server has it, before filters have changed its sender. */
    private static HttpServletRequest received(HttpServletRequest request) {
        ServletRequest innermost = request;
        while (innermost instanceof ServletRequestWrapper wrapper) {
            innermost = wrapper.getRequest();
        }
        return innermost instanceof HttpServletRequest http ? http : request;
    }

    private static boolean namesThisMachine(@Nullable String host) {
        if (host == null) {
            return false;
        }
        String name = host.toLowerCase(Locale.ROOT).replaceFirst(":[0-9]*$", "");
        return name.equals("localhost") || (NUMERIC.matcher(name).matches() && isLoopback(name));
    }

    /** Numeric addresses alone, for which nobody asks a name server. */
    static boolean isLoopback(@Nullable String address) {
        if (address == null || !address.matches("\\[?[0-9a-fA-F:.]+(%\\w+)?]?")) {
            return false;
        }
        try {
            return InetAddress.getByName(address).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false;
        }
    }
}
