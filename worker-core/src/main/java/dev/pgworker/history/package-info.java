/** What became of jobs: runs that have ended, with their errors and results. */
@NullMarked
package dev.pgworker.history;

import org.jspecify.annotations.NullMarked;
