package dev.pgworker.benchmarks;

import java.util.List;

/** Who takes part. */
final class Contenders {

    /** All of them, in the order of the tables. */
    static final List<Contender> ALL = List.of(
            Ours.DEFAULT,
            Ours.TUNED,
            Ours.DIRECT,
            Ours.HISTORY,
            Ours.TUNED_HISTORY,
            Ours.DIRECT_HISTORY,
            new DbScheduler(),
            new JobRunr(),
            new Node("node", true, 1),
            new Node("node-2", true, 2),
            new Node("node-unbatched", false, 1),
            new Node("node-unbatched-2", false, 2),
            new Rust("rust", false),
            new Rust("rust-tuned", true),
            new River("river"),
            Bare.ONE,
            Bare.TWO,
            Bare.PEER,
            Bare.HELD);

    /** Returns the contender of that name. */
    static Contender named(String name) {
        return ALL.stream()
                .filter(contender -> contender.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("--contenders must name some of "
                        + ALL.stream().map(Contender::name).toList() + ", but has " + name));
    }

    /** Returns whether the contender is for scenarios alone in which the history makes a difference. */
    static boolean keepsHistory(Contender contender) {
        return contender instanceof Ours ours && ours.keepsHistory();
    }

    private Contenders() {}
}
