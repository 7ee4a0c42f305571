/** Recurring jobs: what a crontab is and how its text reads. */
@NullMarked
package dev.pgworker.crontab;

import org.jspecify.annotations.NullMarked;
