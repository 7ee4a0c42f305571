package dev.pgworker.dashboard;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Collections;
import java.util.Enumeration;
import java.util.Locale;
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

    /** Names of headers, each of which says that somebody else has sent the request. */
    private static final Pattern FORWARDING =
            Pattern.compile(".*forward.*|.*client[-_]?ip|.*user[-_]ip|via|cdn-loop|x-original-host|x-envoy-.*"
                    + "|x-(real|remote|originating|source|true|proxy)[-_](ip|addr).*|remote[-_]addr"
                    + "|(x-azure|cf-|x-amz-cf|x-amzn-|x-goog-|x-tailscale|ngrok-).*");

    /** Set by Tomcat where it has replaced the sender by one from a header. */
    private static final String REPLACED = "org.apache.tomcat.request.forwarded";

    /** Filters of Spring and of Tomcat that take the sender from headers. */
    private static final Pattern REPLACING = Pattern.compile(".*\\b(ForwardedHeaderFilter|RemoteIpFilter)");

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
        HttpServletRequest received = received(request);
        if (forwardsAreApplied || isReplaced(request) || isReplaced(received) || replacesSenders(request)) {
            return "Without Spring Security the dashboard answers requests from this machine alone, and this application"
                    + " lets headers say where a request comes from (server.forward-headers-strategy, server.tomcat.remoteip,"
                    + " or a filter or valve of its own).";
        }
        if (!isLoopback(received.getRemoteAddr())) {
            return "Without Spring Security the dashboard answers requests from this machine alone.";
        }
        if ("HTTP/1.0".equals(received.getProtocol())) {
            return "Without Spring Security the dashboard answers requests from this machine alone, and a proxy has"
                    + " passed this one on (it came by HTTP/1.0, which no browser speaks).";
        }
        for (String header : Collections.list(names(received))) {
            String name = header.toLowerCase(Locale.ROOT);
            if (FORWARDING.matcher(name).matches()) {
                return "Without Spring Security the dashboard answers requests from this machine alone, and a proxy has"
                        + " passed this one on (header " + name + ").";
            }
        }
        if (!namesThisMachine(received.getHeader("Host"))) {
            return "Without Spring Security the dashboard is served as localhost or 127.0.0.1 alone.";
        }
        if (isOfAnotherSite(received)) {
            return "Without Spring Security no page of another site may read from the dashboard.";
        }
        return null;
    }

    private static boolean isReplaced(HttpServletRequest request) {
        return request.getAttribute(REPLACED) != null;
    }

    private static boolean replacesSenders(HttpServletRequest request) {
        return request.getServletContext().getFilterRegistrations().values().stream()
                .anyMatch(filter -> filter.getClassName() != null
                        && REPLACING.matcher(filter.getClassName()).matches());
    }

    /** A link that leads to a page of the dashboard is followed; data are for its own pages. */
    private static boolean isOfAnotherSite(HttpServletRequest request) {
        String site = request.getHeader("Sec-Fetch-Site");
        if (site == null || site.equals("same-origin") || site.equals("none")) {
            return false;
        }
        String path = request.getPathInfo();
        boolean data = path != null && (path.equals("/api") || path.startsWith("/api/"));
        return data || !"navigate".equals(request.getHeader("Sec-Fetch-Mode"));
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
