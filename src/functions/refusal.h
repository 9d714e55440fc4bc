/*
 * refusal.h
 *	  Why the next ID of a generator would be refused, or would wait.
 */
#ifndef SF_REFUSAL_H
#define SF_REFUSAL_H

#include "issue/shared.h"

/*
 * The message of the error that the next call would raise, or for which instant or process it would
 * wait; "in recovery" on a standby; NULL if it would neither fail nor wait.  Allocates the text.
 * Opens, reserves, fixes and counts nothing, and waits for nothing.
 */
extern const char *sf_refusal(SfShared *shared, SfGenerator *generator);

#endif							/* SF_REFUSAL_H */
