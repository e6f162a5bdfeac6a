# SPDX-License-Identifier: Apache-2.0
"""A network of faster_rcnn_network.py that records the values of a step and rejects a step whose
result depends on rounding."""
import torch
import torchvision
from torchvision.ops import box_iou

from faster_rcnn_network import CLASSES, Sampler, boxes_of, images, keys_of, make_network


class Rejected(Exception):
    """The result of a case depends on rounding."""


class Margins:
    """Minimum distances that fp32 can distinguish. Overlaps of anchors with boxes are exact except
    for the division."""
    OVERLAP, EXACT, SCORE, LEVEL, OPEN = 2e-5, 1e-6, 5e-6, 1e-5, 2e-5

    @staticmethod
    def require(condition, what):
        if not bool(condition):
            raise Rejected(what)

    @classmethod
    def require_distance(cls, values, threshold, margin, what):
        cls.require(values.numel() == 0 or (values - threshold).abs().min() > margin, what)

    @classmethod
    def require_decreasing(cls, scores, margin, what):
        cls.require(scores.numel() < 2 or (scores[:-1] - scores[1:]).min() > margin, what)

    @classmethod
    def require_clear_matches(cls, overlaps, thresholds, margin, what):
        """`overlaps` is (boxes, candidates). Checks each candidate's best box against the thresholds."""
        best = overlaps.max(0).values
        for threshold in thresholds:
            cls.require_distance(best, threshold, margin, f"{what}: an overlap at {threshold}")
        if len(overlaps) > 1:
            two = overlaps.topk(2, dim=0).values[:, best > min(thresholds) - margin]
            cls.require((two[0] - two[1] > margin).all(), f"{what}: two boxes match equally")

    @classmethod
    def require_clear_suppression(cls, boxes, scores, threshold, what):
        """Requires that no decision of greedy suppression depends on rounding."""
        order = scores.argsort(descending=True)
        boxes, scores = boxes[order], scores[order]
        overlaps = box_iou(boxes, boxes)
        kept = []
        for i in range(len(boxes)):
            over = overlaps[i, kept]
            if (over > threshold + cls.OVERLAP).any():
                first = kept[int((over > threshold).nonzero()[0])]
                cls.require(scores[first] - scores[i] > cls.SCORE, f"{what}: suppressed by a tie")
                continue
            cls.require((over < threshold - cls.OVERLAP).all(), f"{what}: an overlap at the limit")
            kept.append(i)


class Detector:
    """A network, its inputs and, after training() or inference(), the recorded values."""

    def __init__(self, case, statistics, dtype=torch.float64):
        self.case, self.dtype = case, dtype
        self.network = make_network(case, statistics, dtype)
        self.recorded = {}
        self.keys = keys_of(case)
        rpn, heads = self.network.rpn, self.network.roi_heads
        rpn.fg_bg_sampler = Sampler(case.anchor_samples, 0.5, 0, self.keys, lambda _, all: all)
        heads.fg_bg_sampler = Sampler(case.region_samples, 0.25, 1, self.keys, self.candidates)
        self.record(rpn, "filter_proposals", "proposals")
        self.record(rpn, "assign_targets_to_anchors", "anchor_labels")
        self.record(heads, "select_training_samples", "regions")
        self.record(heads, "postprocess_detections", "detections")
        for name, module in (("features", self.network.backbone), ("rpn", rpn.head),
                             ("anchors", rpn.anchor_generator), ("roi_align", heads.box_roi_pool),
                             ("head", heads.box_predictor), ("fc6", heads.box_head.fc6),
                             ("fc7", heads.box_head.fc7)):
            module.register_forward_hook(lambda _, inputs, output, name=name:
                                         self.recorded.update({name: output, name + " in": inputs}))
        for module in self.network.modules():
            if isinstance(module, torch.nn.ReLU):
                module.register_forward_pre_hook(lambda _, inputs: self.reject_near_zero(inputs[0]))

    def record(self, owner, method, name):
        """Records the arguments and the result of a method."""
        original = getattr(owner, method)
        def recording(*arguments):
            self.recorded[name + " in"] = [list(a) if isinstance(a, list) else a for a in arguments]
            self.recorded[name] = original(*arguments)
            return self.recorded[name]
        setattr(owner, method, recording)

    def candidates(self, image, indices):
        """Candidate numbers. The true boxes are numbered from the maximum number of proposals on."""
        proposals = len(self.recorded["proposals"][0][image])
        return indices + (indices >= proposals) * (self.case.training_proposals - proposals)

    def reject_near_zero(self, values):
        if self.network.training:
            Margins.require(values.abs().min() > Margins.OPEN, "a value before a ReLU is near zero")

    def images(self):
        case = self.case
        return list(images(case.number, case.batch(), case.height, case.width)
                    .permute(0, 3, 1, 2).contiguous().to(self.dtype))

    def targets(self):
        rows = [torch.from_numpy(boxes[boxes[:, 4] > 0]) for boxes in boxes_of(self.case)]
        return [{"boxes": boxes[:, :4].to(self.dtype), "labels": boxes[:, 4].long()}
                for boxes in rows]

    def training(self):
        """The four losses; the gradient of their sum is left in the parameters."""
        self.network.train()
        losses = self.network(self.images(), self.targets())
        if self.dtype == torch.float64:
            self.check_training()
        sum(losses.values()).backward()
        return {name: float(value.detach()) for name, value in losses.items()}

    def inference(self):
        self.network.eval()
        with torch.no_grad():
            return self.network(self.images())

    def gradients(self):
        return {name: value.grad.double().numpy().ravel()
                for name, value in self.network.named_parameters() if value.requires_grad}

    def check_proposals(self, limit):
        """Checks the choice of proposals by the logits of the anchors, level by level."""
        logits = [level.permute(0, 2, 3, 1).flatten(1).detach() for level in self.recorded["rpn"][0]]
        boxes = self.recorded["proposals in"][0]
        for image in range(self.case.batch()):
            begin = 0
            for level in logits:
                end = begin + level.shape[1]
                best, index = level[image].sort(descending=True)
                Margins.require(len(best) <= limit or best[limit - 1] - best[limit] > Margins.SCORE,
                                "proposals: a tie at the limit of a level")
                level_boxes = self.clipped(boxes[image, begin:end][index[:limit]])
                sides = (level_boxes[:, 2:] - level_boxes[:, :2]).min(1).values
                Margins.require_distance(sides, 1e-3, 1e-4, "proposals: a side at the limit")
                Margins.require_clear_suppression(level_boxes[sides > 1e-3], best[:limit][sides > 1e-3], 0.7,
                                    "proposals")
                begin = end
            Margins.require_decreasing(torch.logit(self.recorded["proposals"][1][image]), Margins.SCORE,
                            "proposals: two equal scores")

    def clipped(self, boxes):
        return torchvision.ops.clip_boxes_to_image(boxes, (self.case.height, self.case.width))

    def check_training(self):
        self.check_proposals(self.case.training_proposals)
        for name in ("fc6", "fc7"):
            self.reject_near_zero(self.recorded[name])
        for image, target in enumerate(self.targets()):
            regions = self.recorded["regions"][0][image].double()
            areas = torchvision.ops.box_area(regions)
            levels = 4 + torch.log2(areas.sqrt() / 224) + 1e-6
            Margins.require_distance(levels - levels.round(), 0, Margins.LEVEL, "regions: between two levels")
            if len(target["boxes"]) == 0:
                continue
            overlaps = box_iou(target["boxes"], self.recorded["anchors"][image])
            Margins.require_clear_matches(overlaps, (0.3, 0.7), Margins.EXACT, "anchors")
            best = overlaps.max(1, keepdim=True).values
            Margins.require(((overlaps == best) | (overlaps < best - Margins.EXACT)).all(),
                            "anchors: two are nearly the best for a box")
            Margins.require_clear_matches(box_iou(target["boxes"], self.recorded["proposals"][0][image]), (0.5,),
                            Margins.OVERLAP, "regions")

    def check_inference(self):
        self.check_proposals(self.case.inference_proposals)
        logits, deltas, proposals, _ = self.recorded["detections in"]
        scores = logits.softmax(-1).split([len(boxes) for boxes in proposals])
        decoded = self.network.roi_heads.box_coder.decode(deltas, proposals).split(
            [len(boxes) for boxes in proposals])
        for image in range(self.case.batch()):
            Margins.require_distance(scores[image][:, 1:], 0.05, Margins.SCORE, "detections: a score at 0.05")
            kept = self.recorded["detections"][1][image]
            Margins.require_decreasing(torch.logit(kept), Margins.SCORE, "detections: two equal scores")
            for label in range(1, CLASSES):
                over = scores[image][:, label] > 0.05
                boxes = self.clipped(decoded[image][over, label])
                Margins.require_distance((boxes[:, 2:] - boxes[:, :2]).flatten(), 0.01, 1e-4,
                              "detections: a side at the limit")
                Margins.require_clear_suppression(boxes, scores[image][over, label], 0.5, "detections")
